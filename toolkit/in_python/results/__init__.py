"""What calls from Python return: what ``--json`` prints, typed."""

from toolkit.in_python.results.looking import (
    Compared,
    ComparedPart,
    ComparedSets,
    Counted,
    Evaluated,
    Previewed,
    StageStatus,
    Status,
    Validated,
)
from toolkit.in_python.results.making import (
    Aligned,
    Annotated,
    CopyOfSample,
    Ingested,
    Mixed,
    Ran,
    Resolved,
    ResolvedSet,
    Tagged,
    Trained,
    TrainedModel,
    ran,
)
from toolkit.in_python.results.releasing import Fetched, Published
from toolkit.in_python.results.result import Result, checked, typed

__all__ = [
    "Aligned",
    "Annotated",
    "Compared",
    "ComparedPart",
    "ComparedSets",
    "CopyOfSample",
    "Counted",
    "Evaluated",
    "Fetched",
    "Ingested",
    "Mixed",
    "Previewed",
    "Published",
    "Ran",
    "Resolved",
    "ResolvedSet",
    "Result",
    "StageStatus",
    "Status",
    "Tagged",
    "Trained",
    "TrainedModel",
    "Validated",
    "checked",
    "ran",
    "typed",
]
