"""Live streams, sections 13 to 16 of docs/FORMAT.md: the names that other parts and the campaigns use."""
from .commands import main
from .frames import deframe, frames, unstuff
from .packets import REPAIR, SOURCE, Bad, Params, header, mark_packet, parse, source_packet
from .vectors import encode_cases, params_of
