"""How a campaign says that fec does not do what it must."""


class Wrong(Exception):
    """fec did what it must not."""


def expect(truth, text):
    if not truth:
        raise Wrong(text)
