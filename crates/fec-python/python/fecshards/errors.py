"""The exceptions of fecshards: one class for each exit code of the command ``fec``.

What the system reports is an OSError (FileNotFoundError, PermissionError, …), and what a file object raises goes through as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._native import Restored

__all__ = ["Damaged", "FecError", "Refused", "UsageError", "WrongRoot"]


class FecError(Exception):
    """What all of them are. ``exit_code`` is what the command ``fec`` ends with for the same reason."""

    exit_code: int


class Damaged(FecError):
    """Too much is lost: the payload cannot be restored whole. ``restored`` tells what is left, where that is known."""

    exit_code = 3
    restored: Optional[Restored] = None


class WrongRoot(FecError):
    """What is there is not what the root promises, or does not open with these keys."""

    exit_code = 5


class Refused(FecError):
    """A limit, or something that this version does not know."""

    exit_code = 6


class UsageError(FecError, ValueError):
    """Wrong use, refused before any work."""

    exit_code = 2
