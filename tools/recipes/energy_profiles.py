"""Applications with scaling, clock and power: ElasticFlow's A100 tables and Zeus's power curves.

Throughput is measured. Power is *made*: no public data has scaling and power of one application
on one GPU. The curves are those fitted to Zeus's V100 measurements, stretched from a V100's 250 W
to an A100's 400 W; that they hold for an A100, at any number of GPUs, is an assumption.
"""

from dataclasses import dataclass
from pathlib import Path

from ronda.instances.generate.applications import MODELS
from ronda.instances.models.power import gpu_power_w
from ronda.instances.profile import Parametric, PowerCurve, Profile, Tabular
from ronda.instances.traces.pollux import read_numbers, shorten
from tools.recipes.made_power import stretch

GPUS_PER_NODE = 8
_STRETCH = 400.0 / 250.0

# P(s) of one V100 in watts: a, b, c, s0; fits to Zeus's measurements (mean error 0.5 to 1.7 %).
_RESNET50 = (26.0, 140.0, 222.0, 0.88)
_BERT_SQUAD = (23.0, 157.0, 200.0, 0.87)
_BERT_SENTIMENT = (24.0, 143.0, 177.0, 0.81)
_DEEPSPEECH2 = (0.0, 135.0, 227.0, 0.86)
_V100_CURVE = {
    "bert": _BERT_SQUAD,
    "gpt2": _BERT_SENTIMENT,
    "resnet50": _RESNET50,
    "vgg16": _RESNET50,
    "inception3": _RESNET50,
    "deepspeech2": _DEEPSPEECH2,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Application:
    """A model at a global batch size; `rate` is samples per second at full clock by GPUs."""

    model: str
    profile: Profile
    rate: dict[int, float]

    def busy_w(self, gpus: int) -> float:
        """Return the mean watts of one of `gpus` GPUs at full clock, synchronisation included."""
        table, curve = self.profile.throughput["A100"], self.profile.power["A100"]
        assert isinstance(table, Tabular)
        k = table.gpus.index(gpus)
        share = table.sync_s[k] / table.step_s[k]
        return (1.0 - share) * float(gpu_power_w(curve)) + share * (curve.sync_w or 0.0)

    @property
    def peak(self) -> int:
        """The number of GPUs beyond which throughput falls."""
        return max(self.rate, key=self.rate.__getitem__)


def applications(source: Path) -> tuple[Application, ...]:
    """Return the 14 applications of ElasticFlow's A100 tables that have a computation model."""
    path = source / "elasticflow" / "throughputs_A100.csv"
    table = read_numbers(path, "model", "global_batch_size num_gpus iters_per_s")
    made = []
    for _, rows in table.groupby(["model", "global_batch_size"]):
        rows = rows.sort_values("num_gpus")
        model, batch = str(rows.model.iloc[0]), float(rows.global_batch_size.iloc[0])
        if model in MODELS:
            speed = dict(zip(rows.num_gpus.astype(int), rows.iters_per_s, strict=True))
            made.append(_application(model, batch, speed))
    return tuple(made)


def _application(model: str, batch: float, iterations: dict[int, float]) -> Application:
    """Return the application with these iterations per second by number of GPUs."""
    gpus = tuple(iterations)
    local = tuple(batch / n for n in gpus)
    step_s = shorten([1.0 / iterations[n] for n in gpus])
    fit = MODELS[model]  # what a measured step takes longer than it computes, it synchronises
    assert isinstance(fit, Parametric)
    sync_s = [
        0.0 if n == 1 else max(0.0, step - (fit.alpha_c_s + fit.beta_c_s * b))
        for n, b, step in zip(gpus, local, step_s, strict=True)
    ]
    table = Tabular(
        gpus=gpus,
        nodes=tuple(max(1, n // GPUS_PER_NODE) for n in gpus),
        local_batch=local,
        step_s=step_s,
        sync_s=shorten(sync_s),
        phi=1.0,  # the power curve is over relative speed, not over clock
    )
    profile = Profile(
        name=f"{model}-{batch:g}",
        throughput={"A100": table},
        power={"A100": power_curve(model)},
        base_batch=batch,
        source="ElasticFlow A100 table (measured); Zeus V100 curve stretched to 400 W (made)",
    )
    rate = {n: batch / step for n, step in zip(gpus, step_s, strict=True)}
    return Application(model=model, profile=profile, rate=rate)


def power_curve(model: str) -> PowerCurve:
    """Return the stretched curve of a model."""
    a_w, b_w, c_w, s0 = _V100_CURVE[model]
    return stretch(PowerCurve(a_w=a_w, b_w=b_w, c_w=c_w, s0=s0), _STRETCH)
