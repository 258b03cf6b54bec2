"""Sealed payloads, section 20 of docs/FORMAT.md: the names that the campaigns use."""
from .age import AES, CHACHA, identity_text
from .commands import main
from .payload import (
    make_private, make_seal, open_payload, open_private, open_sealed, open_up, parse_seal, seal_payload, sealed_of,
)
from .vectors import IDENTITY, wrap
