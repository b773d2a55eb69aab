"""Everything that the page shows, as numbers."""

from types import SimpleNamespace

from eigencurve.planning.labels import LABELS
from eigencurve.planning.loss_view import loss_view
from eigencurve.planning.spectrum_view import spectrum_view
from eigencurve.studio.source import subject_of
from eigencurve.studio.view import curves_view, problem_of


def view_of(settings, upload=None, best=None):
    subject = subject_of(settings, upload)
    problem, max_lr = problem_of(settings, subject)
    curves = curves_view(settings, subject, best)
    losses = loss_view(problem, max_lr, settings.total_steps, curves.compared, settings.scale)
    return SimpleNamespace(spectrum=spectrum_view(subject), curves=curves, losses=losses)


def losses_of(settings, upload=None):
    """The column of losses, by the name of the schedule."""
    rows = view_of(settings, upload).losses.rows
    return {LABELS[row.name]: "diverges" if row.diverges else f"{row.loss:.4g}" for row in rows}
