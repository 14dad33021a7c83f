"""Every encoder and pooling on a GPU, where there is one."""

import pytest
import torch
from small_models import EXAMPLE_PAIRS, PAD, SYSTEM_CASES, join_pair, pad_rows, small_config

from modeling_dsa import DSAForNLI

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)


@pytest.mark.parametrize("changes", SYSTEM_CASES.values(), ids=SYSTEM_CASES)
def test_a_gpu_gives_what_a_cpu_gives_whatever_the_padding(changes: dict[str, object]) -> None:
    torch.manual_seed(0)
    model = DSAForNLI(small_config(sentences_per_example=2, **changes)).eval()
    rows = [join_pair(*pair) for pair in EXAMPLE_PAIRS]
    ids, mask = pad_rows(rows)
    # By itself cuDNN's convolution rounds to TF32.
    with torch.inference_mode(), torch.backends.cudnn.flags(allow_tf32=False):
        expected = model(input_ids=ids, attention_mask=mask).logits
        model.cuda()
        found = model(input_ids=ids.cuda(), attention_mask=mask.cuda()).logits
        wider = torch.nn.functional.pad(ids, (0, 7), value=PAD).cuda()
        padded = model(input_ids=wider, attention_mask=(wider != PAD).long()).logits
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(padded, found, rtol=0, atol=2e-6)


@pytest.mark.parametrize("changes", SYSTEM_CASES.values(), ids=SYSTEM_CASES)
def test_a_training_step_on_a_gpu_has_finite_gradients_in_both_precisions(changes: dict[str, object]) -> None:
    torch.manual_seed(0)
    model = DSAForNLI(small_config(sentences_per_example=2, **changes)).train().cuda()
    ids, mask = (tensor.cuda() for tensor in pad_rows([join_pair(*pair) for pair in EXAMPLE_PAIRS]))
    labels = torch.arange(len(ids), device="cuda") % 3
    for bf16 in (False, True):
        with torch.autocast("cuda", torch.bfloat16, enabled=bf16):
            loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        trained = [weight.grad for weight in model.parameters() if weight.requires_grad]
        assert all(gradient is not None and gradient.isfinite().all() for gradient in trained)
        model.zero_grad()
