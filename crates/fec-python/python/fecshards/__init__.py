"""Protects bytes, files and streams against loss, corruption and tampering.

Code turns bytes into shards and back. encode_file and encode_stream write shard files and containers, which find and
repair their own damage, and which a root proves; decode, verify and repair are their counterparts. The command ``fec``
and this module read each other's files.
"""

from ._native import (
    Code,
    Repaired,
    Report,
    Restored,
    Shard,
    decode_file,
    decode_stream,
    encode_file,
    encode_stream,
    generate_identity,
    payload_len,
    read_range,
    repair_file,
    verify_file,
    verify_stream,
)
from .errors import Damaged, FecError, Refused, UsageError, WrongRoot

__all__ = [
    "Code",
    "Damaged",
    "FecError",
    "Refused",
    "Repaired",
    "Report",
    "Restored",
    "Shard",
    "UsageError",
    "WrongRoot",
    "decode_file",
    "decode_stream",
    "encode_file",
    "encode_stream",
    "generate_identity",
    "payload_len",
    "read_range",
    "repair_file",
    "verify_file",
    "verify_stream",
]
