"""Documents: files that are uploaded, read, cut into chunks and found again.

The operations are in operations.py. What a document is and how it changes is in store.py, from a
file to searchable chunks in processing.py, what these become in chunk_memories.py, the reading of
files in parsing/; what nobody needs any more goes in sweeping.py.

An upload answers 202 when the file is durable and a job will read it; the document's own URL says
how far that is. Uploading the same content into the same collection again makes no second document:
it answers with the one that is there, with 200 when that is completed, and tries again when it had
failed.

Choices:
- an upload that finds its document there gives it what is sent of title, tags and metadata; the
  rest stays, and so does the name, or two names of one content would take turns; one that is read
  again has the name it is sent under. The memories of
  its chunks say the same a moment later, each for what a change of it costs; where the tier has no
  room for one more version, or the month no credits, they do not;
- `GET …/content` is sent as an attachment, so that no browser runs what somebody uploaded;
- `GET …/text` is plain text, empty until the document has been read;
- recordings need the tier feature `media`; recordings and pictures count against the media cap;
- the credits of an upload are set aside, and charged with those of its chunks when it is completed;
  one that failed, was deleted before or found its document there costs nothing;
- a file whose reader is not installed (extras.py) is 501, and nothing of it is kept; where the
  reader went after the upload, the document fails;
- the file of a document that failed is removed after `documents.failed_file_kept_seconds`; the
  document stays, says so, and is read when its file is uploaded once more;
- a file is read by a process that can open nothing and call nobody (parsing/sandbox.py); where this
  machine cannot see to that, documents fail in production, and `mneme doctor` says why;
- deleting a document deletes the memories of its chunks; deleting such a memory leaves the document
  as it is.
"""

from __future__ import annotations

from plugins.collections import COLLECTION_CLEANUP
from plugins.documents.chunk_memories import DESCRIBE_JOB
from plugins.documents.extras import DOCUMENTS, MEDIA
from plugins.documents.limits import DOCUMENTS_KEPT, FILE_BYTES_KEPT
from plugins.documents.operations import OPERATIONS
from plugins.documents.parsing.sandbox import missing
from plugins.documents.privacy import CHECKS, erase, export, figures
from plugins.documents.processing import PROCESS_JOB
from plugins.documents.settings import DocumentsSettings
from plugins.documents.store import DOCUMENT_FIELDS, EVENTS, PARTS, TABLES, find_row
from plugins.documents.sweeping import JOBS, sweep_collection
from runtime.api.plugin import Plugin
from runtime.api.tiers import Feature

__all__ = ["plugin"]

plugin = Plugin(
    name="documents",
    id_prefixes=("chk", "doc"),
    records={"doc": lambda ctx, document_id: find_row(ctx, document_id) is not None},
    requires=("collections", "memories"),
    operations=OPERATIONS,
    tables=TABLES,
    indexes=(DOCUMENT_FIELDS,),
    events=EVENTS,
    subscribe={COLLECTION_CLEANUP.kind: sweep_collection},
    jobs=(PROCESS_JOB, DESCRIBE_JOB, *JOBS),
    erase=erase,
    export=export,
    figures=figures,
    keeps=(FILE_BYTES_KEPT, DOCUMENTS_KEPT),
    swept=PARTS,
    checks=CHECKS,
    settings={"documents": DocumentsSettings},
    features={"media": Feature("Audio and video documents", tier="starter")},
    rates={"media": lambda settings: settings.limits.media_per_minute},
    extras=(DOCUMENTS, MEDIA),
    lacks=lambda _: [
        f"documents: parsers are not confined without {what}; in production no file is read"
        for what in missing()
    ],
)
