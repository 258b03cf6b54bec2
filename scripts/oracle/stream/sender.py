"""§14.5: a sender, without timers."""
from ..basics import ceil_div
from .packets import BLOCKS, CLASSIC, CLASSIC_BLOCKS, Row, mark_packet, repair_packet, source_packet, symbol_of
from .rows import row_symbol

ENDS = 3


def send(p, repair, source, payloads):
    """All packets of a stream that is sent without pause."""
    symbols, packets, state = {}, [], dict(number=0, block=None, part=0, owed=0)
    paid = earned = 0                           # §14.5: the credits of packets and of bytes
    size = p.D if p.profile == CLASSIC_BLOCKS else p.W

    def row(first, count, part=0):
        s = ceil_div(count, p.D) if p.profile == BLOCKS else 1
        longest = max(len(payloads[first + j]) for j in range(count) if j % s == part % s)
        symbol = row_symbol(p, state["number"], first, count, part, symbols)
        assert not any(symbol[6 + longest:])
        symbol = symbol[:6 + longest]
        packets.append(repair_packet(p, Row(state["number"], first, count, part, symbol)))
        state["number"] += 1

    def start(n):
        return 0 if n <= p.W else p.D * ceil_div(n - p.W, p.D)

    def sliding(n):
        row(start(n), n - start(n))

    def of_block():
        """The next row of the last complete block or window, if it lacks one."""
        if state["owed"]:
            row(*state["block"], state["part"] if p.profile == BLOCKS else 0)
            state["owed"] -= 1
            state["part"] += 1

    def close(first, count):
        while state["owed"]:
            of_block()
        sets = ceil_div(count, p.D) if p.profile == BLOCKS else 1
        state.update(block=(first, count), part=0, owed=sets * ceil_div(ceil_div(count, sets) * repair, source))

    for n, payload in enumerate(payloads, 1):
        packets.append(source_packet(p, n - 1, payload))
        symbols[n - 1] = symbol_of(p, n - 1, payload)
        if p.profile > CLASSIC and n % size == 0:
            close(n - size, size)
        if p.profile <= CLASSIC:
            paid = min(paid, source) + repair
            earned += repair * 9 * (42 + len(payload))
            cost = source * 8 * (58 + max(map(len, payloads[start(n):n])))
            while paid >= source and earned >= cost:
                sliding(n)
                paid -= source
                earned -= cost
        else:
            for _ in range(n * repair // source - (n - 1) * repair // source):
                of_block()
    n = len(payloads)
    if p.profile <= CLASSIC:
        tail = min(n, max(24, min(n // 12, max(p.W // 4, p.D))))
        for _ in range(ceil_div(tail * repair, source)):
            sliding(n)
    else:
        if n % size:
            close(n - n % size, n % size)
        while state["owed"]:
            of_block()
    return packets, [mark_packet(p, n, 1)] * ENDS
