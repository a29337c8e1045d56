"""Which class answers for a model family in each of transformers' Auto classes, and where the public names live."""

import importlib
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import wrapt


@dataclass(frozen=True)
class Family:
    """A model family's entries in the Auto classes.

    Args:
        config: Module and name of the configuration class.
        tokenizer: Module and name of the tokenizer class.
        modeling: Module of the base model and of those that learn from text alone.
        text_models: Auto class -> model class, of those.
        modeling_tasks: Module of the models for tasks with labels.
        task_models: Auto class -> model class, of those.
        lora_target_modules: The linear layers that PEFT's LoRA is to change where its configuration names none.
    """

    config: tuple[str, str]
    tokenizer: tuple[str, str]
    modeling: str
    text_models: dict[str, str]
    modeling_tasks: str
    task_models: dict[str, str]
    lora_target_modules: tuple[str, ...] = ()

    @property
    def models(self) -> dict[str, str]:
        """Auto class -> model class."""
        return {**self.text_models, **self.task_models}

    def module_of(self, auto_class: str) -> str:
        """Module of the class that answers in an Auto class."""
        return self.modeling_tasks if auto_class in self.task_models else self.modeling


FAMILIES = {
    "elmo": Family(
        config=(".elmo.configuration_elmo", "ElmoConfig"),
        tokenizer=(".elmo.tokenization_elmo", "ElmoTokenizer"),
        modeling=".elmo.modeling_elmo",
        text_models={
            "AutoModel": "ElmoModel",
            "AutoModelForPreTraining": "ElmoForPreTraining",
        },
        modeling_tasks=".elmo.modeling_tasks_elmo",
        task_models={
            "AutoModelForSequenceClassification": "ElmoForSequenceClassification",
            "AutoModelForTokenClassification": "ElmoForTokenClassification",
            "AutoModelForQuestionAnswering": "ElmoForQuestionAnswering",
            "AutoModelForMultipleChoice": "ElmoForMultipleChoice",
        },
        lora_target_modules=("input_linear", "recurrent_linear"),
    ),
    "lineage_albert": Family(
        config=(".albert.configuration_albert", "LineageAlbertConfig"),
        tokenizer=(".albert.tokenization_albert", "LineageAlbertTokenizer"),
        modeling=".albert.modeling_albert",
        text_models={
            "AutoModel": "LineageAlbertModel",
            "AutoModelForPreTraining": "LineageAlbertForPreTraining",
            "AutoModelForMaskedLM": "LineageAlbertForMaskedLM",
        },
        modeling_tasks=".albert.modeling_tasks_albert",
        task_models={
            "AutoModelForSequenceClassification": "LineageAlbertForSequenceClassification",
            "AutoModelForTokenClassification": "LineageAlbertForTokenClassification",
            "AutoModelForQuestionAnswering": "LineageAlbertForQuestionAnswering",
            "AutoModelForMultipleChoice": "LineageAlbertForMultipleChoice",
        },
        lora_target_modules=("query", "value"),
    ),
    "lineage_xlnet": Family(
        config=(".xlnet.configuration_xlnet", "LineageXLNetConfig"),
        tokenizer=(".xlnet.tokenization_xlnet", "LineageXLNetTokenizer"),
        modeling=".xlnet.modeling_xlnet",
        text_models={
            "AutoModel": "LineageXLNetModel",
            "AutoModelForPreTraining": "LineageXLNetForPreTraining",
            "AutoModelForCausalLM": "LineageXLNetLMHeadModel",
        },
        modeling_tasks=".xlnet.modeling_tasks_xlnet",
        task_models={
            "AutoModelForSequenceClassification": "LineageXLNetForSequenceClassification",
            "AutoModelForTokenClassification": "LineageXLNetForTokenClassification",
            "AutoModelForQuestionAnswering": "LineageXLNetForQuestionAnsweringSimple",
            "AutoModelForMultipleChoice": "LineageXLNetForMultipleChoice",
        },
        lora_target_modules=("q", "v"),
    ),
}

# Public name -> module, for the names that are not in an Auto class
_OTHER_NAMES = {
    "ElmoEmbedder": ".elmo.embedder_elmo",
    "ElmoPreTrainedModel": ".elmo.modeling_elmo",
    "LineageAlbertPreTrainedModel": ".albert.modeling_albert",
    "LineageXLNetForQuestionAnswering": ".xlnet.modeling_tasks_xlnet",
    "LineageXLNetPreTrainedModel": ".xlnet.modeling_xlnet",
    "convert_elmo_checkpoint": ".elmo.conversion_elmo",
    "export_elmo_checkpoint": ".elmo.conversion_elmo",
    "push_folder": ".hub.push",
}

# Tasks whose pipeline in transformers does not suit a family's tokenizer -> module and name of one that does
PIPELINES = {
    "text-generation": (".xlnet.pipeline_xlnet", "LineageXLNetTextGenerationPipeline"),
    "token-classification": (".elmo.pipeline_elmo", "ElmoTokenClassificationPipeline"),
}


def _public_names() -> dict[str, str]:
    names = dict(_OTHER_NAMES)
    for family in FAMILIES.values():
        for module, name in (family.config, family.tokenizer):
            names[name] = module
        names.update({name: family.module_of(auto_class) for auto_class, name in family.models.items()})
    names.update({name: module for module, name in PIPELINES.values()})
    return dict(sorted(names.items()))


PUBLIC_NAMES = _public_names()

_is_registered = False
_imported: set[str] = set()  # modules whose import is complete, of those that are watched
_done: set[Callable[[], None]] = set()  # registrations that have been made


def register() -> None:
    """Registers every family with transformers' Auto classes; a second call changes nothing.

    Each registration waits until transformers' own module with the Auto class is imported, so that it costs nothing
    where it is not needed.
    """
    global _is_registered
    if _is_registered:
        return
    _is_registered = True
    auto = "transformers.models.auto"
    _when_imported(f"{auto}.configuration_auto", _register_configs)
    _when_imported(f"{auto}.tokenization_auto", _register_tokenizers)
    _when_imported(f"{auto}.modeling_auto", _register_models)
    _when_imported("transformers.pipelines", _register_pipelines)
    wrapt.register_post_import_hook(_register_lora_targets, "peft.utils.constants")


def _when_imported(trigger: str, action: Callable[[], None]) -> None:
    """Runs an action once the module `trigger` is imported, when no module that the action needs is imported halfway.

    transformers' modules import each other in circles, and the action imports classes that build on them, so it may
    have to wait for an import that is under way further up.
    """
    watched = [trigger, *_needed_modules()]

    def attempt(module: ModuleType) -> None:
        _imported.add(module.__name__)
        halfway = [name for name in watched if name in sys.modules and name not in _imported]
        if trigger in _imported and not halfway and action not in _done:
            _done.add(action)
            action()

    for name in watched:
        wrapt.register_post_import_hook(attempt, name)


def _needed_modules() -> list[str]:
    """The modules of transformers that a family's files import, and the files of every family."""
    modules = [f"transformers.{name}" for name in ("configuration_utils", "modeling_utils", "modeling_layers")]
    for family in FAMILIES.values():
        package = importlib.import_module(family.modeling.rpartition(".")[0], __package__)
        modules += [f"{package.__name__}.{module.name}" for module in pkgutil.iter_modules(package.__path__)]
    return modules


def _load(module: str, name: str) -> type:
    return getattr(importlib.import_module(module, __package__), name)


def _register_configs() -> None:
    from transformers import AutoConfig

    for model_type, family in FAMILIES.items():
        AutoConfig.register(model_type, _load(*family.config), exist_ok=True)


def _register_tokenizers() -> None:
    from transformers import AutoTokenizer

    for family in FAMILIES.values():
        AutoTokenizer.register(_load(*family.config), tokenizer_class=_load(*family.tokenizer), exist_ok=True)


def _register_models() -> None:
    from transformers.models.auto import modeling_auto

    for family in FAMILIES.values():
        for auto_class, name in family.models.items():
            getattr(modeling_auto, auto_class).register(
                _load(*family.config), _load(family.module_of(auto_class), name), exist_ok=True
            )


def _register_pipelines() -> None:
    from transformers.pipelines import PIPELINE_REGISTRY

    for task, target in PIPELINES.items():
        PIPELINE_REGISTRY.supported_tasks[task]["impl"] = _load(*target)


def _register_lora_targets(constants: ModuleType) -> None:
    # what is there already is somebody's choice
    targets = constants.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
    for model_type, family in FAMILIES.items():
        targets.setdefault(model_type, list(family.lora_target_modules))


__all__ = ["FAMILIES", "PIPELINES", "PUBLIC_NAMES", "Family", "register"]
