"""Bounds of accounts, their export and their import, with the unit at the end of each name."""

from __future__ import annotations

# --- erasing, export, import ----------------------------------------------------------------------
ERASED_ROWS_PER_STEP = 2_000
ERASE_ATTEMPTS_MAX = 100_000
EXPORT_RECORDS_PER_PART = 200
EXPORT_BYTES_PER_PART = 1024 * 1024
EXPORT_CURSOR_CHARS_MAX = 2_048  # a key of LMDB has up to 511 bytes, here in hex, in Base64
IMPORT_RECORDS_MAX = 100_000
IMPORT_RECORDS_PER_PART = 50  # that are signed together, and sent by a client at a time
IMPORT_RECORDS_TOGETHER = 20  # each so many are a transaction that others wait for
SIGNATURE_CHARS_MAX = 64

# --- accounts -------------------------------------------------------------------------------------
PASSWORD_CHARS_MIN = 10
PASSWORD_CHARS_MAX = 1_024
PASSWORD_HASH_THREADS_MAX = 2
PASSWORD_HASHES_WAITING_MAX = 64
RESET_SECONDS = 3_600
VERIFY_SECONDS = 24 * 3600
MAIL_THREADS_MAX = 2
MAILS_WAITING_MESSAGES_MAX = 100  # in one slot
MAILS_PER_ADDRESS_AND_HOUR_MESSAGES_MAX = 5
CODE_CHARS_MAX = 64
RECOVERY_CODES_TOKENS = 10
INVITATION_SECONDS_MAX = 90 * 24 * 3600
INVITATIONS_PER_SLOT_RECORDS_MAX = 10_000
API_KEYS_PER_TENANT_MAX = 1_000
