"""A service that reads documents, and an account on it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.endpoints import Endpoint
from tests.support.in_process import InProcess

SPOKEN = "The meeting begins at nine on Thursday, and Maria brings the signed contract."


@dataclass
class DocumentHarness:
    """A service with all models, and an account on it."""

    service: InProcess
    token: str
    models: Endpoint

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = self.service.request(method, path, body, who=self.token, **headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def chunks(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        page = self("GET", f"/v1/documents/{document['id']}/chunks?limit=100")
        assert page["total_count"] == document["chunk_count"]
        return page["items"]

    def text(self, document: dict[str, Any]) -> str:
        answer = self.service.request("GET", f"/v1/documents/{document['id']}/text", who=self.token)
        assert (answer.status_code, answer.headers["Content-Type"]) == (
            200,
            "text/plain; charset=utf-8",
        )
        return answer.text

    def processed(self, filename: str, content: bytes, **fields: str) -> dict[str, Any]:
        return self.service.processed(filename, content, who=self.token, **fields)

    def collection(self, name: str) -> str:
        return self.service.request(
            "POST", "/v1/collections", {"name": name}, who=self.token
        ).json()["id"]

    def search(self, query: str, **further: Any) -> list[dict[str, Any]]:
        return self(
            "POST", "/v1/search", {"query": query, "include_low_confidence": True, **further}
        )["results"]

    def files(self) -> list[Path]:
        return [
            path for path in (self.service.settings.data_dir / "blobs").rglob("*") if path.is_file()
        ]

    def idle(self) -> None:
        self.service.settle()
