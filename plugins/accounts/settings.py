"""How mails to accounts leave the service: the section `mail` of the settings."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from runtime.settings import Section


class MailSettings(Section, frozen=True):
    follows = "auth"

    host: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "SMTP server that takes the service's mails; null sends none, and a service that is "
            "not in production logs the tickets instead."
        ),
    )
    port: int = Field(default=587, ge=1, le=65_535, description="Port of the SMTP server.")
    security: Literal["starttls", "tls", "none"] = Field(
        default="starttls",
        description="How the connection is encrypted: after a greeting, from the start, or not.",
    )
    user: str | None = Field(default=None, description="Name to log in with; null logs in nobody.")
    password: SecretStr | None = Field(default=None, description="Password of user.")
    sender: str = Field(
        default="mneme@localhost", min_length=3, description="Address that mails come from."
    )
    link: str | None = Field(
        default=None,
        pattern=r"^https?://",
        description=(
            "Page that mails lead to, with #purpose=…&ticket=… behind it: the dashboard's, such as "
            "`https://memory.example.com/dashboard/mailed`, or one of yours; null mails the ticket "
            "alone."
        ),
    )
    timeout_seconds: float = Field(
        default=10.0, gt=0, le=60, description="Seconds each step with the SMTP server may take."
    )
