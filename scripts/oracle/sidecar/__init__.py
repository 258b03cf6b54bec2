"""Sidecars, section 17 of docs/FORMAT.md: the names that the campaigns use."""
from .catalog import places_of
from .commands import main
from .disk import write_tree
from .files import check_base, inspect, repair, verify
from .parts import (
    EXECUTABLE, EXITS, FILE, FOLDER, GONE, HARDLINK, NOTHING, SYMLINK, Rec, block_place, part,
    piece_place, plain_digests, step, texts, varint, write_entries,
)
from .pieces import Reader
from .repair_list import half_mended, repair_list
from .writer import Draft, Item, seal
