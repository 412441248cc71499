"""What tokens cost: ``prices`` in a model file or a judge file, and amounts of money."""

import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from adhere.config.fields import Strict, is_number


def _decimal(value: Any) -> Any:
    # As it is written: the binary fraction nearest to 0.1 is not 0.1.
    return Decimal(str(value)) if is_number(value) else value


def _currency(code: str) -> str:
    if not re.fullmatch(r"[A-Z]{3}", code):
        raise ValueError("must be three capital letters, such as USD")
    return code


# Six decimals of a price for a million tokens make twelve of what a token costs.
Money = Annotated[
    Decimal, BeforeValidator(_decimal), Field(ge=0, le=1_000_000_000, decimal_places=6)
]
Currency = Annotated[str, AfterValidator(_currency)]
BatchFactor = Annotated[Decimal, BeforeValidator(_decimal), Field(ge=0, le=1, decimal_places=2)]


class Prices(Strict):
    """What an endpoint asks for its tokens. It turns tokens into money and changes no result."""

    input: Money = Field(description="A million tokens of prompt.")
    cached_input: Money | None = Field(
        None, description="The same where the provider had them cached. Default: as `input`."
    )
    output: Money = Field(description="A million tokens of reply, reasoning included.")
    batch_factor: BatchFactor = Field(
        Decimal("0.5"), description="What is asked in batches (`batch`) costs this part of it all."
    )
    currency: Currency = Field("USD", description="Three capital letters.")
