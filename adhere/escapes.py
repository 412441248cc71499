"""Foreign text that people are shown."""


def escaped(text: str) -> str:
    r"""Return text with all that is not to be seen as its escape (``\x1b``, ``\n``, ``\u202e``).

    So no text moves a terminal's cursor or recolours what follows, and a line stays one line.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
