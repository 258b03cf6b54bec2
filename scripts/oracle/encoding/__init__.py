"""Shard files and containers, sections 2 to 12 of docs/FORMAT.md: the names that other parts and the campaigns use."""
from ..basics import (
    BLAKE3, CONTAINER, EXIT, MAGIC_A, MAGIC_M, MAGIC_R, MAGIC_S, MAGIC_X, SHA256, SHARDS, Fault, Notes, align,
    ceil_div, flipped, generate, store,
)
from ..hashes import crc32c, digest, forget
from .commands import main
from .containers import Scan, find_chains
from .forge import forge, part, shard_names, spots
from .geometry import SEALED, Geo, pack, unpack
from .meta import META_LIMIT, check_meta, entry, make_meta
from .reader import load, read_all
from .shard_files import read_header, read_shard_file
from .trees import proof_size
from .vectors import FORMS
from .writer import META_COPY, annex, encode, put_crc, write_meta_frame
