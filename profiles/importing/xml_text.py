"""A reader of XML text: without entities, DTDs or external references, with a size limit."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from profiles.errors import DocumentInvalid
from profiles.importing.source_file import SourceFile

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MAX_XML_BYTES = 32 << 20
MAX_ELEMENTS = 500_000


def parse_xml(file: SourceFile) -> Element:
    """The root element.  Raises DocumentInvalid with line and column."""
    from defusedxml import DefusedXmlException  # type: ignore[import-untyped]
    from defusedxml.ElementTree import fromstring  # type: ignore[import-untyped]

    text = file.text(MAX_XML_BYTES).lstrip()
    try:
        root: Element = fromstring(text, forbid_dtd=True)
    except ParseError as error:
        line, column = error.position
        raise DocumentInvalid(
            f"not valid XML: {str(error).split(':')[0]}",
            where=f"{file.where}:{line}:{column + 1}",
            hint="the file may be cut off; dump it again",
        ) from None
    except DefusedXmlException:
        raise DocumentInvalid(
            "the XML declares entities or a document type", where=file.where, hint="remove the <!DOCTYPE ...> block"
        ) from None
    except (ValueError, RecursionError) as error:
        raise DocumentInvalid(f"not valid XML: {error}", where=file.where, hint="save it as UTF-8") from None
    if sum(1 for _ in root.iter()) > MAX_ELEMENTS:
        raise DocumentInvalid(f"more than {MAX_ELEMENTS:,} elements", where=file.where, hint="is it the right file?")
    return root
