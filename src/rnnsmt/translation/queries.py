"""The requests to translate: their fields, and how they are read from JSON, forms and addresses.

``{"text": "...", "nbest": n, "explain": true}`` is JSON. Requests of LibreTranslate clients have ``q``, in JSON, in a
form (URL-encoded, or of parts as ``FormData`` of a browser sends it), or in the address (``POST /translate?q=...``).
Everything must be UTF-8. ``python-multipart`` reads forms of parts, ``urllib`` the others, pydantic JSON.
"""

import logging
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import parse_qsl

from fastapi import HTTPException, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json
from python_multipart.multipart import Field as Part
from python_multipart.multipart import File, FormParser, parse_options_header

MOST_BYTES = 200_000
"""Maximum size of the body of a request in bytes."""

MOST_LINES = 1000
"""Maximum number of lines in a request."""

MOST_NBEST = 100
"""Maximum number of translations per line."""

MOST_FIELDS = MOST_LINES + 20
"""Maximum number of fields of a form."""

JSON, FORM, PARTS = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
"""Content types of requests."""

logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # a mistake of a client is answered, not logged


class Query(BaseModel):
    """Text to translate."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: str = Field(description="segments, one per line")
    nbest: int = Field(0, ge=0, le=MOST_NBEST, description="number of translations per line; 0: only the best one")
    explain: bool = Field(False, description="whether to return the phrases, their scores, and the contributions")


class LibreTranslateQuery(BaseModel):
    """Request of a LibreTranslate client; other fields, such as ``api_key``, are ignored."""

    q: str | list[str] = Field(description="a text, or several")
    source: str = Field(description="source language of the system, or `auto` (languages are not detected)")
    target: str = Field(description="target language of the system")
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(0, ge=0, lt=MOST_NBEST, description="maximum number of other translations")


Fields = list[tuple[str, str]]
"""Names and values of a form, in their order."""


async def read_query(request: Request) -> Query | LibreTranslateQuery:
    """Read and check a request."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request can have at most {MOST_BYTES:,} bytes")
    content_type = request.headers.get("content-type", "")
    kind = content_type.partition(";")[0].strip().lower()
    address = request.scope["query_string"]
    if kind not in (JSON, FORM, PARTS) and (body or not address):
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send it as Content-Type: {JSON}, {FORM} or {PARTS}")
    try:
        if kind == JSON:
            content = from_json(bytes(body))  # rejects lone surrogates
        else:
            fields = _parts(bytes(body), content_type) if kind == PARTS else _url_encoded(bytes(body))
            content = _by_name(_url_encoded(address) + fields)
        if isinstance(content, dict) and "q" in content and "text" not in content:
            given = {name: value for name, value in content.items() if value or name == "q"}  # clients send `format=`
            return LibreTranslateQuery.model_validate(given)
        return Query.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{name}: " for name in first["loc"][:1])[:40]
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"{where}{first['msg']}; see /docs") from None
    except ValueError:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"the request is not valid {kind or FORM}; see /docs") from None


def _by_name(fields: Fields) -> dict[str, Any]:
    """Return fields as a map; the value of a name that occurs several times is a list."""
    values: dict[str, list[str]] = {}
    for name, value in fields:
        values.setdefault(name, []).append(value)
    return {name: several[0] if len(several) == 1 else several for name, several in values.items()}


def _url_encoded(text: bytes) -> Fields:
    """Return the fields of a URL-encoded form.

    Raises:
        ValueError: it is not UTF-8, or has too many fields.
    """
    return parse_qsl(text.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)


def _parts(body: bytes, content_type: str) -> Fields:
    """Return the fields of a form of parts (RFC 7578).

    Raises:
        ValueError: it is not valid, not complete or not UTF-8, or has too many fields.
    """
    _, options = parse_options_header(content_type.encode("latin-1"))
    fields: Fields = []
    ended = False

    def add(name: bytes | None, value: bytes) -> None:
        if len(fields) == MOST_FIELDS:
            raise ValueError
        fields.append(((name or b"").decode("utf-8"), value.decode("utf-8")))

    def add_field(part: Part) -> None:
        add(part.field_name, part.value or b"")

    def add_file(part: File) -> None:
        part.file_object.seek(0)
        add(part.field_name, part.file_object.read())

    def end() -> None:
        nonlocal ended
        ended = True

    in_memory = {"MAX_MEMORY_FILE_SIZE": MOST_BYTES + 1, "UPLOAD_ERROR_ON_BAD_CTE": True}
    parser = FormParser(PARTS, add_field, add_file, end, options.get(b"boundary"), config=in_memory)
    parser.write(body)
    parser.finalize()
    if not ended:
        raise ValueError
    return fields
