"""Why a run or a cluster stands still: what its processes say, gathered on request, and the conclusion from it."""
