"""The claims as tables, one per system, with notes on each claim below."""

from collections.abc import Iterator, Mapping, Sequence

from ronda.bench.reproduction.claims import LONG_MIN, Claim, Figure
from ronda.instances.tables.table import Table


def tables_of(claims: Sequence[Claim], figures: Mapping[str, Figure]) -> Iterator[Table]:
    """Yield a table for each system."""
    for system in dict.fromkeys(claim.system for claim in claims):
        own = [claim for claim in claims if claim.system == system]
        rows = (_row(claim, figures.get(claim.name)) for claim in own)
        yield Table.of(system, rows, _notes(own))


def listed(claims: Sequence[Claim], figures: Mapping[str, Figure]) -> Table:
    """Return a line for each claim: its name, published figure, our figure, verdict and minutes."""
    rows = []
    for claim in claims:
        row = _row(claim, figures.get(claim.name))
        short = {name: row[name] for name in ("claim", "published", "here", "verdict")}
        rows.append(short | {"minutes": f"{claim.minutes:g}" if claim.words else "–"})
    note = "`ronda reproduce --list SYSTEM` says of what, from where, and why; minutes on two cores"
    return Table.of("", rows, [note])


def _row(claim: Claim, figure: Figure | None) -> dict[str, str]:
    named = (f"{axis} {v}" if v in ("true", "false") else v for axis, v in claim.against.items())
    return {
        "claim": claim.name,
        "what": claim.what,
        "published": claim.published,
        "as": claim.sure,
        "here": "–" if figure is None else claim.write(figure),
        "against": ", ".join(named) or "–",
        "sizes": "–" if figure is None else figure.sizes or "–",
        "verdict": str(claim.verdict(figure)),
        "measured": "–" if figure is None else f"{figure.version}, {figure.date}",
    }


def _notes(claims: Sequence[Claim]) -> Iterator[str]:
    """Yield the source of each claim and the reason for its verdict, then the commands."""
    for claim in claims:
        parts = filter(None, (claim.source, claim.unknowable, claim.why))
        yield f"{claim.name}: {'. '.join(parts)}."
    for words in dict.fromkeys(claim.words for claim in claims if claim.words):
        own = [claim for claim in claims if claim.words == words]
        minutes = own[0].minutes
        last = ", and only if a claim is named" if minutes > LONG_MIN else ""
        names = ", ".join(claim.name for claim in own)
        yield f"`ronda {words}`: {names} (some {minutes:g} min on two cores{last})"
