"""Names of transformers 5, and what stands for them where transformers 4.57 loads a model of the Hub.

There a config takes its fields as they are: types and sizes were checked when the model was saved.
"""

from dataclasses import dataclass, fields
from typing import Any, TypeVar

try:
    from huggingface_hub.dataclasses import strict
    from transformers import PreTrainedConfig
    from transformers import initialization as init
except ImportError:
    from torch.nn import init  # type: ignore[no-redef]
    from transformers import PretrainedConfig

    Config = TypeVar("Config")

    def strict(cls: type[Config]) -> type[Config]:  # type: ignore[no-redef]
        """That of huggingface_hub 0.x cannot check `int | None`."""
        return cls

    class PreTrainedConfig(PretrainedConfig):  # type: ignore[no-redef]
        """A config whose fields are those of a dataclass."""

        def __init_subclass__(cls, **kwargs: Any) -> None:
            super().__init_subclass__(**kwargs)
            dataclass(init=False, repr=False, eq=False)(cls)

        def __init__(self, **kwargs: Any) -> None:
            defaults: dict[str, Any] = {field.name: field.default for field in fields(self)}
            super().__init__(**(defaults | kwargs))
            self.__post_init__(**kwargs)

        def __post_init__(self, **kwargs: Any) -> None:
            pass


__all__ = ["PreTrainedConfig", "init", "strict"]
