"""`/v1/models`: which models are served, and from where; registering and unloading."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query

from tenfold_control_api.openapi import MASTER_CALL, problems
from tenfold_control_api.problems import PLACE_MEMBERS, pointing
from tenfold_control_api.routes.common import ControlDep, JsonBody
from tenfold_control_api.serving.shapes import ModelList, ModelRegistration, ModelView

router = APIRouter(prefix="/v1/models", tags=["models"])

ModelName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$", description="The model's name.")]
#: What loading a model can answer.
LOADING = (
    *("no-models", "no-such-model", "invalid-model", "missing-parameter", "no-such-cluster", "no-such-job"),
    *("no-such-task", "no-master", "tasks-missing", "too-many-watchers", "stopping", "too-many-sessions"),
    *("no-such-session", "disk-unavailable", *MASTER_CALL),
)


@router.get("", summary="Every model", openapi_extra=problems("no-models", "invalid-model"))
async def list_models(
    control: ControlDep,
    cluster: Annotated[str | None, Query(max_length=63, description="Only models that run on this cluster.")] = None,
    state: Annotated[Literal["ready", "unloaded"] | None, Query(description="Only models in this state.")] = None,
) -> ModelList:
    """The registered models, and those in the service's models folder."""
    return ModelList(models=await control.models.views(cluster, state))


@router.get("/{model:name}", summary="One model", openapi_extra=problems("no-models", "no-such-model", "invalid-model"))
async def get_model(model: ModelName, control: ControlDep) -> ModelView:
    return await control.models.view(model)


@router.put(
    "/{model:name}", summary="Register a model, and load it", dependencies=[JsonBody], openapi_extra=problems(*LOADING)
)
async def put_model(model: ModelName, registration: ModelRegistration, control: ControlDep) -> ModelView:
    """Repeating the request reloads it."""
    with pointing(PLACE_MEMBERS):
        return await control.models.register(model, registration)


@router.delete(
    "/{model:name}", summary="Unload a model", openapi_extra=problems("no-models", "no-such-model", "invalid-model")
)
async def delete_model(model: ModelName, control: ControlDep) -> ModelView:
    """Its registration is deleted and its session closed once its active requests have ended. Its files remain."""
    return await control.models.unload(model)
