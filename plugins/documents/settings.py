"""What may be uploaded and what parsing it may take: the section `documents` of the settings."""

from __future__ import annotations

from pydantic import Field

from runtime.settings import Section


class DocumentsSettings(Section, frozen=True):
    follows = "ocr"

    max_upload_bytes: int = Field(
        default=50 * 1024**2,
        ge=1,
        description="Bytes of the largest file that can be uploaded; larger ones are 413.",
    )
    failed_file_kept_seconds: int = Field(
        default=24 * 3600,
        ge=0,
        description="Seconds after which the file of a document that failed is removed.",
    )
    parser_seconds: float = Field(
        default=120.0, gt=0, le=250, description="Seconds that the parser of one file may take."
    )
    parser_memory_bytes: int = Field(
        default=1024**3,
        ge=64 * 1024**2,
        description="Bytes of address space that the parser of one file may take.",
    )
