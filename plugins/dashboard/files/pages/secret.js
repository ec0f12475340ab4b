// What is shown once: a key, a signing secret, recovery codes, a receipt. Neither going back nor Escape takes it away unasked.

import { button, copyButton, dialog, h, mono } from "../kit.js";

const ASKED = "It is shown this once. Whoever has not copied it cannot have it again.";

// copy: what the button is called that copies it. told, further: what is said above and below.
export const secretDialog = (title, secret, { copy, told, further, done = "I have copied it" }) =>
  dialog(
    title,
    (close) =>
      h(
        "div",
        { class: "stack" },
        h("p", null, told),
        h("div", { class: "secret row between" }, mono(secret), copyButton(secret, copy)),
        further && h("p", { class: "note" }, further),
        h(
          "div",
          { class: "row end" },
          button(done, () => close(), { kind: "primary" }),
        ),
      ),
    { stays: ASKED },
  );
