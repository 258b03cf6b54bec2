"""Other tools for live streams on the networks of streams_field.py, beside fec: plain UDP, SRT (Debian: srt-tools) and
RIST (rist-tools).

    streams_field.py --fec BIN --rivals [--only NAME,...]

Tools that are not installed are left out. The other tools read and write datagrams, fec reads and writes pipes; lines
are numbered and timed as in all scenarios, and films are decoded by ffmpeg. The only requirement of any tool is that
lines that come out are lines that went in.
"""
import os
import shutil
import signal
import socket
import time

from field_run import PORT, Skipped, decoder_errors, film
from router import Way

SIZE = 7 * 188                                      # a datagram of MPEG-TS, and the most that SRT takes
SECONDS, START, REST = 30, 1.5, 4          # REST: seconds until the last has come
IN, OUT = 4000, 6000                                # ports of the datagrams that go in and come out


def srt(latency, more=""):
    options = "latency=%d%s" % (latency, more)
    return ("srt-live-transmit", ["srt-live-transmit", "-q", "udp://127.0.0.1:%d" % IN, "srt://10.77.0.2:%d?%s" % (PORT, options)],
            ["srt-live-transmit", "-q", "srt://:%d?mode=listener&%s" % (PORT, options), "udp://127.0.0.1:%d" % OUT])


def rist(buffer):
    return ("ristsender", ["ristsender", "-i", "udp://@127.0.0.1:%d" % IN, "-o", "rist://10.77.0.2:%d" % PORT, "-b", buffer, "-v", 3],
            ["ristreceiver", "-i", "rist://@10.77.0.2:%d" % PORT, "-o", "udp://127.0.0.1:%d" % OUT, "-b", buffer, "-v", 3])


FEC_6, FEC_10 = ("&packetfilter=fec,cols:%d,rows:%d,arq:never" % grid for grid in ((6, 1), (10, 10)))
TOOLS = {"udp": None, "fec": None, "srt-120": srt(120), "srt-250": srt(250), "srt-400": srt(400), "srt-1200": srt(1200), "srt-fec-6x1": srt(250, FEC_6),
         "srt-fec-10x10": srt(400, FEC_10), "rist-250": rist(250), "rist-400": rist(400), "rist-1200": rist(1200)}
# Each network with its losses in words, its line both ways, megabits a second, and the tools.
NETWORKS = {
    "calm": ("0.1 % lost both ways, round trip 50 ms", Way(loss=0.001, delay=0.025), 20, ("fec", "srt-250", "rist-250")),
    "near": ("5 % lost both ways, round trip 50 ms", Way(loss=0.05, delay=0.025), 20, ("udp", "fec", "srt-120", "srt-250", "srt-fec-6x1", "srt-fec-10x10", "rist-250")),
    "outages": ("1 % lost in bursts of 30, round trip 100 ms", Way(bursts=(0.01, 30), delay=0.05), 20, ("fec", "srt-400", "rist-400")),
    "far": ("10 % lost both ways, round trip 300 ms", Way(loss=0.1, delay=0.15), 5, ("fec", "srt-400", "srt-1200", "rist-1200")),
    "bursts": ("3 % lost in bursts of 30, round trip 50 ms", Way(bursts=(0.03, 30), delay=0.025), 5, ("fec", "srt-250", "rist-250")),
}


def measure(field, tool, way, mbps, is_film):
    if TOOLS[tool] and not shutil.which(TOOLS[tool][0]) or is_film and not shutil.which("ffmpeg"):
        raise Skipped("it is not installed")
    router = field.network(1, [way], [way])
    data = film(field.folder, SECONDS) if is_film else None
    how = dict(mbps=mbps, seconds=SECONDS, size=SIZE, data=data)
    if tool == "fec":
        receiver = field.receiver(raw=is_film)
        sender = field.sender("udp://10.77.0.2:%d" % PORT, "--packet", SIZE, **how)
        field.wait(sender, receiver)
    else:
        receiver, sender = with_datagrams(field, TOOLS[tool], is_film, how)
    if is_film:
        out = os.path.join(field.folder, "out.ts")
        with open(out, "wb") as f:
            f.write(receiver.rest)
        came = "%s, %d errors of the decoder" % ("exact" if receiver.rest == data else "%d of %d bytes" % (receiver.bytes, len(data)), decoder_errors(out))
    else:
        missing = len(set(range(sender.sent)).difference(receiver.got.get(sender.tag, [])))
        came = "%d of %d lines missing" % (missing, sender.sent) if missing else "exact"
        field.hold(not receiver.wrong, "%d lines came out that nobody sent" % receiver.wrong)
    field.tell(came, receiver, sender)
    counts = router.stop()[0]
    field.row["sent / payload"] = "%.2f + %.2f" % tuple(direction["bytes"] / (sender.sent * SIZE) for direction in counts)


def with_datagrams(field, tool, is_film, how):
    """Receiver and sender of a tool that takes and gives datagrams; without a tool the bare network carries them."""
    with field.lab.inside("b"):
        out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    out.bind(("127.0.0.1", OUT) if tool else ("10.77.0.2", OUT))
    with field.lab.inside("a"):
        into = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    nothing = ["sleep", 1000]
    receiver = field.raw_receiver(tool[2] if tool else nothing, raw=is_film, of=out)
    time.sleep(0.5)
    other = field.start(tool[1] if tool else nothing)
    time.sleep(START)
    into.connect(("127.0.0.1", IN) if tool else ("10.77.0.2", OUT))
    sender = field.raw_sender(nothing, to=into, **how)
    field.run.until(lambda: sender.sent == sender.count and time.monotonic() > sender.times[-1] + REST, SECONDS + 60, "the end of all")
    for process in (sender.process, other, receiver.process):
        process.send_signal(signal.SIGKILL)
    receiver.ended = sender.ended = None
    return receiver, sender


def register(scenario):
    for network, (what, way, mbps, tools) in NETWORKS.items():
        for tool in tools:
            scenario("%s-%s" % (network, tool), what, tool=tool, way=way, mbps=mbps, is_film=False)(measure)
    what, way, _, tools = NETWORKS["near"]
    for tool in tools:
        scenario("film-%s" % tool, what, tool=tool, way=way, mbps=4, is_film=True)(measure)
