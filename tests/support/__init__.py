"""What tests share: harnesses, endpoints that services call, corpora."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
