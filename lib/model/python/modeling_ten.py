"""TEN: a language model whose layers remember by a recurrence of complex numbers, c_t = lambda c_{t-1} + b_t.

What a text leaves behind has the same size after any number of tokens: generation costs the same for each. Padding, wherever it
stands, is taken out of a row: what is left is computed as if it stood alone. Written for transformers 5.

B rows, T tokens, D hidden size, K eigenstates, Z = 2K: the real parts, then the imaginary ones. Recurrences are computed in fp32
whatever the weights have.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F
from transformers import GenerationMixin, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutputWithPast

from .configuration_ten import TenConfig

LARGEST_LOG_MODULUS = -1e-6
SCAN_CHUNK = 64


class LayerState:
    """What a layer keeps of the rows so far: tensors by name, whose first dimension is the row.

    No dictionary, for accelerate hands copies of those to layers.
    """

    def __init__(self):
        self.tensors = {}

    def __contains__(self, name):
        return name in self.tensors

    def __getitem__(self, name):
        return self.tensors[name]

    def __setitem__(self, name, tensor):
        self.tensors[name] = tensor

    def reorder(self, rows):
        self.tensors = {name: tensor.index_select(0, rows.to(tensor.device)) for name, tensor in self.tensors.items()}


class TenCache:
    is_compileable = False

    def __init__(self, layers):
        self.states = [LayerState() for _ in range(layers)]
        self.columns = 0  # of input, padding among them

    def get_seq_length(self, layer_idx=0):
        return self.columns

    def reorder_cache(self, beam_idx):
        for state in self.states:
            state.reorder(beam_idx)


def complex_of(parts_btz):
    real, imaginary = parts_btz.chunk(2, dim=-1)
    return torch.complex(real.contiguous(), imaginary.contiguous())


def parts_of(c_btk):
    return torch.cat((c_btk.real, c_btk.imag), dim=-1)


def take(rows, places):
    """rows [B, T, ...] at places [B] or [B, N]."""
    return rows[torch.arange(len(rows), device=rows.device).view(-1, *[1] * (places.dim() - 1)), places]


def scan(log_decay, b_btk, before_bk):
    """c_t = exp(log_decay_t) c_{t-1} + b_t, a chunk after the other. log_decay: complex128 [K], or [B, T, K]."""
    selective, pieces = log_decay.dim() > 1, []
    for begin in range(0, b_btk.shape[1], SCAN_CHUNK):
        b_bqk = b_btk[:, begin:begin + SCAN_CHUNK]
        length = b_bqk.shape[1]
        if selective or begin == 0 or length < SCAN_CHUNK:
            if selective:
                logs = log_decay[:, begin:begin + length].cumsum(dim=1)
            else:
                logs = (log_decay * torch.arange(1, length + 1, device=log_decay.device)[:, None])[None]
            later = torch.ones(length, length, dtype=torch.bool, device=logs.device).triu(1)[..., None]
            # Powers of a decay underflow to zero where a token would see a later one.
            among = (logs[:, :, None] - logs[:, None]).masked_fill(later, -1e4).exp().to(b_btk.dtype)
            from_before = logs.exp().to(b_btk.dtype)
        if selective:
            c_bqk = torch.einsum("bijk,bjk->bik", among, b_bqk)
        else:
            c_bqk = torch.einsum("ijk,bjk->bik", among[0], b_bqk)
        c_bqk = c_bqk + from_before * before_bk[:, None]
        before_bk = c_bqk[:, -1]
        pieces.append(c_bqk)
    return torch.cat(pieces, dim=1)


def norm(config):
    return nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)


def linear(inputs, outputs, start_factor=1.0):
    """start_factor: of the deviation of its weights where training starts."""
    layer = nn.Linear(inputs, outputs, bias=False)
    layer.start_factor = start_factor
    return layer


def into_residual(config, inputs):
    return linear(inputs, config.hidden_size, (2 * config.num_hidden_layers) ** -0.5)


class Recurrence(nn.Module):
    def __init__(self, config, eigenstates):
        super().__init__()
        self.init = config.init
        self.log_decay, self.frequency = (nn.Parameter(torch.zeros(eigenstates)) for _ in range(2))

    def log_modulus_and_angle(self, a, w):
        log_modulus, angle = (-a.exp(), w.exp()) if self.init == "lru" else (F.logsigmoid(a), w)
        return log_modulus.clamp(max=LARGEST_LOG_MODULUS), angle

    def forward(self, u_btz, lengths, state, name, shift_btz=None):
        """The states [B, T, K], from that of `state`, which then has the ones that rows of these lengths end with."""
        a, w = self.log_decay.double(), self.frequency.double()
        log_modulus, angle = self.log_modulus_and_angle(a, w)
        b_btk = complex_of(u_btz)
        if self.init == "lru":
            b_btk = b_btk * torch.sqrt(-torch.expm1(2 * log_modulus)).to(u_btz.dtype)
        if shift_btz is not None:
            shift_a, shift_w = shift_btz.double().chunk(2, dim=-1)
            log_modulus, angle = self.log_modulus_and_angle(a + 0.1 * shift_a.tanh(), w + 0.05 * shift_w.tanh())
        before_bk = state[name] if name in state else torch.zeros_like(b_btk[:, 0])
        c_btk = scan(torch.complex(log_modulus, angle), b_btk, before_bk)
        state[name] = take(torch.cat((before_bk[:, None], c_btk), dim=1), lengths)
        return c_btk


class Matrix(nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(shape))


class Memory(nn.Linear):
    """What a layer takes over from the states of the layer below, real and imaginary parts alike.

    A linear layer, as adapters want it; the gate of its outputs is the cell's to apply, which reads it from under an adapter, too.
    Quantisers that put layers of their own in its place lose the gate, and are to be told to leave "memory" out.
    """

    def __init__(self, eigenstates):
        super().__init__(eigenstates, eigenstates, bias=False)
        self.gate = nn.Parameter(torch.zeros(1))


class Convolution(Matrix):
    """Tap j of a channel is the weight of what stood j tokens before."""

    def forward(self, u_btz, lengths, state):
        taps = self.weight.shape[1]
        if "conv" in state:
            u_btz = torch.cat((state["conv"], u_btz), dim=1)
        else:
            u_btz = F.pad(u_btz, (0, 0, taps - 1, 0))
        state["conv"] = take(u_btz, lengths[:, None] + torch.arange(taps - 1, device=lengths.device))
        length = u_btz.shape[1] - (taps - 1)
        kernel = self.weight.to(u_btz.dtype)
        return F.silu(sum(kernel[:, j] * u_btz[:, taps - 1 - j:][:, :length] for j in range(taps)))


class Coupling(Matrix):
    """Mixes the eigenstates of each head, real and imaginary parts alike."""

    def forward(self, parts_btz):
        heads, width = self.weight.shape[:2]
        blocks = parts_btz.unflatten(-1, (2, heads, width))
        return torch.einsum("hij,btphj->btphi", self.weight, blocks).flatten(-3)


class TenCell(Recurrence):
    def __init__(self, config, layer):
        width, eigenstates = config.hidden_size, config.num_eigenstates
        super().__init__(config, eigenstates)
        self.layer = layer
        block = eigenstates // config.num_heads
        self.in_proj = linear(width, 2 * eigenstates)
        self.memory = Memory(eigenstates) if config.layer_memory and layer > 0 else None
        self.conv = Convolution(2 * eigenstates, config.conv_kernel) if config.conv_kernel else None
        self.selective_proj = linear(width, 2 * eigenstates, 0.0) if config.selective else None
        self.coupling = Coupling(config.num_heads, block, block)
        self.out_proj = into_residual(config, 2 * eigenstates)
        self.gate_proj = nn.Linear(width, width)

    def forward(self, xn_btd, below_btz, lengths, state):
        """(what is added to the stream, the states [B, T, Z])"""
        u_btz = self.in_proj(xn_btd)
        if self.memory is not None:
            u_btz = u_btz + self.remembered(below_btz)
        u_btz = u_btz.to(torch.promote_types(u_btz.dtype, torch.float32))
        if self.conv is not None:
            u_btz = self.conv(u_btz, lengths, state)
        shift_btz = self.selective_proj(xn_btd) if self.selective_proj is not None else None
        c_btz = parts_of(super().forward(u_btz, lengths, state, "scan", shift_btz)).to(xn_btd.dtype)
        return torch.sigmoid(self.gate_proj(xn_btd)) * self.out_proj(self.coupling(c_btz)), c_btz

    def remembered(self, below_btz):
        real, imaginary = below_btz.chunk(2, dim=-1)
        gate = getattr(self.memory, "base_layer", self.memory).gate  # peft stands an adapter before the layer
        return gate.sigmoid() * torch.cat((self.memory(real), self.memory(imaginary)), dim=-1)


class WindowCell(Recurrence):
    """A recurrence over the means of whole windows of tokens; a token sees the last window that ends with it or before."""

    def __init__(self, config, layer, number):
        eigenstates = config.num_eigenstates // len(config.windows)
        super().__init__(config, eigenstates)
        self.layer, self.number, self.size = layer, number, config.windows[number]
        self.in_proj = linear(config.hidden_size, 2 * eigenstates)
        self.out_proj = into_residual(config, 2 * eigenstates)

    def forward(self, xn_btd, lengths, state):
        size, (rows, length, width) = self.size, xn_btd.shape
        dtype = torch.promote_types(xn_btd.dtype, torch.float32)
        names = [f"windows.{self.number}.{name}" for name in ("sum", "seen", "last", "scan")]
        if names[0] not in state:
            state[names[0]] = torch.zeros(rows, width, dtype=dtype, device=xn_btd.device)
            state[names[1]] = torch.zeros_like(lengths)
            state[names[2]] = torch.zeros_like(xn_btd[:, 0])
        begun_bd, seen_b, last_bd = (state[name] for name in names[:3])
        # Each row is moved to the right by the tokens of the window that it has begun; their sum stands for them.
        windows = -(-(length + size - 1) // size)
        places = torch.arange(windows * size, device=xn_btd.device)
        own = (places >= seen_b[:, None]) & (places < (seen_b + lengths)[:, None])
        moved = take(xn_btd, (places - seen_b[:, None]).clamp(0, length - 1)).to(dtype) * own[..., None]
        moved = moved + F.pad(begun_bd[:, None], (0, 0, 0, len(places) - 1))
        means = moved.unflatten(1, (windows, size)).sum(dim=2) / size
        u_bnz = self.in_proj(means.to(xn_btd.dtype)).to(dtype)
        complete_b = (seen_b + lengths) // size
        c_bnk = super().forward(u_bnz, complete_b, state, names[3])
        out_bnd = torch.cat((last_bd[:, None], self.out_proj(parts_of(c_bnk).to(xn_btd.dtype))), dim=1)
        state[names[0]] = (moved * (places >= size * complete_b[:, None])[..., None]).sum(dim=1)
        state[names[1]] = (seen_b + lengths) % size
        state[names[2]] = take(out_bnd, complete_b)
        return take(out_bnd, (seen_b[:, None] + torch.arange(1, length + 1, device=xn_btd.device)) // size)


class MultiScale(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.windows = len(config.windows)
        for number in range(self.windows):
            self.add_module(str(number), WindowCell(config, layer, number))
        self.gate_proj = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, xn_btd, lengths, state):
        cells = [getattr(self, str(number)) for number in range(self.windows)]
        return torch.sigmoid(self.gate_proj(xn_btd)) * sum(cell(xn_btd, lengths, state) for cell in cells)


class TenMlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.up_proj = linear(config.hidden_size, config.intermediate_size)
        self.down_proj = into_residual(config, config.intermediate_size)

    def forward(self, xn_btd):
        return self.down_proj(F.silu(self.up_proj(xn_btd)))


class TenLayer(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.cell_norm, self.cell = norm(config), TenCell(config, layer)
        if config.windows:
            self.multi_scale_norm, self.multi_scale = norm(config), MultiScale(config, layer)
        else:
            self.multi_scale_norm = self.multi_scale = None
        self.mlp_norm, self.mlp = norm(config), TenMlp(config)

    def forward(self, x_btd, below_btz, lengths, state):
        update, c_btz = self.cell(self.cell_norm(x_btd), below_btz, lengths, state)
        x_btd = x_btd + update
        if self.multi_scale is not None:
            x_btd = x_btd + self.multi_scale(self.multi_scale_norm(x_btd), lengths, state)
        return x_btd + self.mlp(self.mlp_norm(x_btd)), c_btz


class TenPreTrainedModel(PreTrainedModel):
    config_class = TenConfig
    base_model_prefix = "ten"
    _no_split_modules = ["TenLayer"]
    _keep_in_fp32_modules_strict = ["log_decay", "frequency"]
    _is_stateful = True  # it cannot go back to fewer tokens

    @classmethod
    def _supports_default_dynamic_cache(cls):
        return False

    @torch.no_grad()
    def _init_weights(self, module):
        config = self.config
        if isinstance(module, Memory):
            nn.init.eye_(module.weight)
            nn.init.constant_(module.gate, -3.0)
        elif isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=config.initializer_range * getattr(module, "start_factor", 1.0))
            if getattr(module, "bias", None) is not None:
                nn.init.constant_(module.bias, -2.0)  # gates alone have a bias
        elif isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, Coupling):
            size = module.weight.shape[-1]
            module.weight.normal_(std=0.01 / math.sqrt(size)).add_(torch.eye(size, device=module.weight.device))
        elif isinstance(module, Convolution):
            bound = module.weight.shape[1] ** -0.5
            nn.init.uniform_(module.weight, -bound, bound)
        elif isinstance(module, Recurrence):
            self._start_decay(module)

    def _start_decay(self, module):
        config, eigenstates = self.config, len(module.log_decay)
        if config.init == "lru":
            low, high = config.min_modulus ** 2, config.max_modulus ** 2
            modulus = torch.rand(eigenstates, dtype=torch.float64).mul(high - low).add(low).sqrt()
            module.log_decay.copy_(modulus.log().neg().log())
            module.frequency.copy_((config.max_angle * (1 - torch.rand(eigenstates, dtype=torch.float64))).log())
            return
        low, high = -3.0, -0.1
        if config.depth_decay:
            center = -2 + 1.5 * module.layer / max(1, config.num_hidden_layers - 1)
            low, high = center - 1, center + 0.5
        nn.init.uniform_(module.log_decay, low, high)
        module.frequency.copy_(torch.arange(eigenstates) * (2 * math.pi / eigenstates))


class TenModel(TenPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(TenLayer(config, layer) for layer in range(config.num_hidden_layers))
        self.norm = norm(config)
        self.post_init()

    def get_input_embeddings(self):
        return self.embed_tokens

    def set_input_embeddings(self, value):
        self.embed_tokens = value

    def forward(self, input_ids=None, attention_mask=None, past_key_values=None, inputs_embeds=None, use_cache=None,
                output_hidden_states=None, return_dict=None, **kwargs):
        """attention_mask: 0 for padding; of these tokens, or of those in the cache, too."""
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("exactly one of input_ids and inputs_embeds has to be given")
        x_btd = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        rows, length = x_btd.shape[:2]
        if use_cache is None:
            use_cache = self.config.use_cache and not self.training
        cache = past_key_values if past_key_values is not None else TenCache(len(self.layers))
        lengths, back = torch.full((rows,), length, device=x_btd.device), None
        if attention_mask is not None:
            if attention_mask.dim() != 2:
                raise ValueError("attention_mask has to be of two dimensions: rows, tokens")
            tokens_bt = attention_mask[:, -length:].to(device=x_btd.device, dtype=torch.bool)
            if not tokens_bt.all():
                order = tokens_bt.logical_not().to(torch.int8).argsort(dim=1, stable=True)
                lengths, back = tokens_bt.sum(dim=1), order.argsort(dim=1)
                x_btd = take(x_btd, order)

        def shown(x_btd):
            return x_btd if back is None else take(x_btd, back)

        hidden, c_btz = [], None
        for layer, state in zip(self.layers, cache.states):
            hidden.append(shown(x_btd) if output_hidden_states else None)
            x_btd, c_btz = layer(x_btd, c_btz, lengths, state)
        x_btd = shown(self.norm(x_btd))
        cache.columns += length
        output = BaseModelOutputWithPast(last_hidden_state=x_btd, past_key_values=cache if use_cache else None,
                                         hidden_states=(*hidden, x_btd) if output_hidden_states else None)
        return output.to_tuple() if return_dict is False else output


class TenForCausalLM(TenPreTrainedModel, GenerationMixin):
    _tied_weights_keys = {"lm_head.weight": "ten.embed_tokens.weight"}

    def __init__(self, config):
        super().__init__(config)
        self.ten = TenModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def get_input_embeddings(self):
        return self.ten.embed_tokens

    def set_input_embeddings(self, value):
        self.ten.embed_tokens = value

    def get_output_embeddings(self):
        return self.lm_head

    def set_output_embeddings(self, value):
        self.lm_head = value

    def prepare_inputs_for_generation(self, input_ids, past_key_values=None, attention_mask=None, inputs_embeds=None,
                                      use_cache=None, next_sequence_length=None, **kwargs):
        inputs = {"attention_mask": attention_mask, "past_key_values": past_key_values, "use_cache": use_cache}
        new = next_sequence_length
        if past_key_values is not None and attention_mask is not None:  # which is as long as all tokens so far
            new = attention_mask.shape[1] - past_key_values.get_seq_length()
        if inputs_embeds is not None and past_key_values is None:
            return {**inputs, "inputs_embeds": inputs_embeds}
        return {**inputs, "input_ids": input_ids if new is None else input_ids[:, -new:]}

    def forward(self, input_ids=None, attention_mask=None, past_key_values=None, inputs_embeds=None, labels=None,
                use_cache=None, output_hidden_states=None, return_dict=None, logits_to_keep=0, **kwargs):
        """labels: as input_ids, -100 where nothing is to be predicted; token t predicts label t + 1.

        logits_to_keep: how many tokens' logits are computed, from the last; 0: all.
        """
        body = self.ten(input_ids=input_ids, attention_mask=attention_mask, past_key_values=past_key_values,
                        inputs_embeds=inputs_embeds, use_cache=use_cache, output_hidden_states=output_hidden_states)
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits = self.lm_head(body.last_hidden_state[:, kept])
        loss = None
        if labels is not None:
            loss = self.loss_function(logits=logits, labels=labels, vocab_size=self.config.vocab_size, **kwargs)
        output = CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=body.past_key_values,
                                        hidden_states=body.hidden_states)
        return output.to_tuple() if return_dict is False else output
