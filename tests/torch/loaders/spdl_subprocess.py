"""SPDL: a pipeline of threads in a process of its own."""

from spdl.pipeline import PipelineBuilder, run_pipeline_in_subprocess

from training import ENDLESS, Load, Model, Truth, arguments


def main():
    given = arguments()
    builder = PipelineBuilder().add_source(range(ENDLESS)).pipe(Load(given), concurrency=given.workers).add_sink(2)
    loader = run_pipeline_in_subprocess(builder.get_config(), num_threads=given.workers)
    model, truth = Model(given.step), Truth(given)
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
