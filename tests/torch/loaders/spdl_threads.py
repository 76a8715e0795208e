"""SPDL: a pipeline of threads."""

from spdl.pipeline import PipelineBuilder

from training import ENDLESS, Load, Model, Truth, arguments


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    builder = PipelineBuilder().add_source(range(ENDLESS)).pipe(Load(given), concurrency=given.workers).add_sink(2)
    pipeline = builder.build(num_threads=given.workers)
    with pipeline.auto_stop():
        truth.waits()
        for batch in pipeline:
            truth.steps()
            model.train_step(batch)
            truth.waits()


if __name__ == "__main__":
    main()
