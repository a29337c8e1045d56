"""What Trainer hands to others: a search of settings by optuna, curves for TensorBoard."""

import pytest
from datasets import Dataset
from tiny_families import FAMILIES, config_of, model_class, tokenizer_of
from transformers import DataCollatorWithPadding, Trainer, TrainingArguments


@pytest.fixture
def trainer_of(tmp_path):
    def make(family: str, **settings) -> Trainer:
        tokenizer = tokenizer_of(family)
        data = Dataset.from_dict({"text": ["good film", "bad film"] * 4, "labels": [1, 0] * 4})
        data = data.map(lambda batch: tokenizer(batch["text"]), batched=True, remove_columns="text")
        return Trainer(
            model_init=lambda: model_class(family, "ForSequenceClassification")(config_of(family)),
            args=TrainingArguments(
                str(tmp_path), max_steps=2, per_device_train_batch_size=4, eval_strategy="steps", eval_steps=2,
                logging_steps=1, save_strategy="no", use_cpu=True, disable_tqdm=True, **settings,
            ),
            train_dataset=data,
            eval_dataset=data,
            data_collator=DataCollatorWithPadding(tokenizer),
        )  # fmt: skip

    return make


@pytest.mark.parametrize("family", FAMILIES)
def test_optuna_searches_settings(family, trainer_of):
    optuna = pytest.importorskip("optuna", reason="needs the extra neighbours")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    rates = (1e-4, 1e-1)
    seen = []

    def space(trial) -> dict:
        rate = trial.suggest_categorical("learning_rate", rates)
        seen.append(rate)
        return {"learning_rate": rate}

    best = trainer_of(family).hyperparameter_search(
        space,
        n_trials=2,
        direction="minimize",
        backend="optuna",
        sampler=optuna.samplers.GridSampler({"learning_rate": rates}),
    )
    assert sorted(seen) == sorted(rates)
    assert best.hyperparameters["learning_rate"] in rates
    assert best.objective > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_tensorboard_gets_what_trainer_logs(family, trainer_of, tmp_path, monkeypatch):
    pytest.importorskip("tensorboard", reason="needs the extra tracking")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "curves"))
    trainer = trainer_of(family, report_to="tensorboard")
    trainer.train()
    events = EventAccumulator(str(tmp_path / "curves")).Reload()
    logged = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert [event.value for event in events.Scalars("train/loss")] == pytest.approx(logged)
    assert len(logged) == 2
    assert "eval/loss" in events.Tags()["scalars"]
