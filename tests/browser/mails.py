"""What a service mailed to somebody, and where the links in it lead."""

from __future__ import annotations

from email import message_from_string, policy

from tests.browser.person import Person
from tests.support.mailbox import Mailbox


def link(person: Person, box: Mailbox, email: str, purpose: str) -> str:
    """Below /dashboard: where the newest mail of this purpose leads."""

    def newest() -> str:
        sent = [read(text) for to, text in box.letters if to == email]
        leading = [text for text in sent if f"purpose={purpose}" in text]
        return leading[-1] if leading else ""

    text = person.until(newest, lambda: f"no mail to {email}: {box.letters}")
    return text.partition("https://memory.example.com/dashboard")[2].split()[0]


def read(letter: str) -> str:
    """A mail's text, as a reader of mails has it."""
    content = message_from_string(letter, policy=policy.default).get_content()
    return str(content)
