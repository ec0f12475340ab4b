/** Files on their way to the service, as a form. */

/** What a file is given by. In Node, `await openAsBlob(path)` makes a Blob of a path. */
export type FileContent = Blob | ArrayBuffer | Uint8Array<ArrayBuffer> | string;

/** What goes along with a file. */
export interface UploadFields {
  /** What it is called; a File has a name of its own. */
  filename?: string;
  /** The collection it belongs to; the default one when absent. */
  collection_id?: string;
  /** A name; else the title that the file gives itself. */
  title?: string;
  /** Labels, at most 32. */
  tags?: readonly string[];
  /** Free JSON object, at most 16 KiB. */
  metadata?: Record<string, unknown>;
}

/** The form of a file. Throws TypeError where it has no name, or a label of it has a comma. */
export function formOf(file: FileContent, { filename, ...fields }: UploadFields): FormData {
  const name = filename ?? (file instanceof Blob ? (file as Partial<File>).name : undefined);
  if (!name) {
    throw new TypeError("The file needs a filename; give one.");
  }
  const form = new FormData();
  for (const [field, value] of Object.entries(fields)) {
    if (value !== undefined && value !== null) {
      form.set(field, textOf(field, value));
    }
  }
  form.set("file", file instanceof Blob ? file : new Blob([file]), name);
  return form;
}

function textOf(
  field: string,
  value: string | readonly string[] | Record<string, unknown>,
): string {
  if (typeof value === "string") {
    return value;
  }
  if (!Array.isArray(value)) {
    return JSON.stringify(value);
  }
  if (value.some((text: string) => text.includes(","))) {
    throw new TypeError(`${field}: no comma may be in one; a form has commas between them.`);
  }
  return value.join(",");
}
