"""The exceptions of fecshards: one class for each exit code of the command ``fec``.

An error of the system is an OSError (FileNotFoundError, PermissionError, …). An exception of a file object passes
unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._native import Restored

__all__ = ["Damaged", "FecError", "Refused", "UsageError", "WrongRoot"]


class FecError(Exception):
    """The base of all exceptions. The command ``fec`` ends with ``exit_code`` for the same reason."""

    exit_code: int


class Damaged(FecError):
    """Too much is lost: the payload cannot be restored whole. ``restored`` describes the remains, if they are known."""

    exit_code = 3
    restored: Optional[Restored] = None


class WrongRoot(FecError):
    """The bytes are not those that the root promises, or do not open with these keys."""

    exit_code = 5


class Refused(FecError):
    """The input exceeds a limit, or needs something that this version does not know."""

    exit_code = 6


class UsageError(FecError, ValueError):
    """Wrong use, refused before any work."""

    exit_code = 2
