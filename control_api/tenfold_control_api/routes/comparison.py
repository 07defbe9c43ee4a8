"""`/v1/runs:compare`: several runs side by side."""

from typing import Annotated

from fastapi import APIRouter, Query

from tenfold_control_api.openapi import problems
from tenfold_control_api.routes.common import ControlDep
from tenfold_control_api.runs.comparison import compare
from tenfold_control_api.runs.comparison_models import ComparisonView
from tenfold_control_api.runs.progress import SHOWN_POINTS

router = APIRouter(prefix="/v1/runs", tags=["runs"])


@router.get(":compare", summary="Several runs side by side", openapi_extra=problems("no-such-run"))
async def compare_runs(
    control: ControlDep,
    run: Annotated[list[str], Query(min_length=1, max_length=100, description="A run; once for each run.")],
    scalar: Annotated[list[str] | None, Query(max_length=100, description="Only these scalars.")] = None,
    points: Annotated[int, Query(ge=2, le=SHOWN_POINTS, description="Points of each curve, at most.")] = SHOWN_POINTS,
) -> ComparisonView:
    """Their parameters and other facts, with those that differ first, and their curves."""
    records = [await control.runs.get(each) for each in dict.fromkeys(run)]
    progress = await control.runs.progress.of_all([each.id for each in records])
    return compare([(each, progress[each.id]) for each in records], scalar or (), points)
