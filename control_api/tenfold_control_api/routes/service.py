"""`/v1/service`: what the control service says of itself."""

from importlib.metadata import version

from fastapi import APIRouter

from tenfold_control_api.models import ServiceView
from tenfold_control_api.routes.common import ControlDep

router = APIRouter(tags=["service"])


@router.get("/v1/service", summary="The service itself: whom it accepts, and how")
async def get_service(control: ControlDep) -> ServiceView:
    settings = control.settings
    return ServiceView(
        version=version("tenfold"),
        insecure=settings.lets_everybody_in,
        tokens=settings.has_tokens,
        tls=settings.tls_cert is not None,
        services=control.replicas.addresses(),
        runs_found=control.runs.found,
    )
