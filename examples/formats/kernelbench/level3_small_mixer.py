import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, tokens, channels):
        super().__init__()
        self.token_norm, self.channel_norm = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.tokens = nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens))
        self.channels = nn.Sequential(nn.Linear(channels, 2 * channels), nn.GELU(), nn.Linear(2 * channels, channels))

    def forward(self, x):
        x = x + self.tokens(self.token_norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.channel_norm(x))


class Model(nn.Module):
    """Two blocks that mix tokens and channels in turn, their mean over tokens, and a head; two outputs."""

    def __init__(self, tokens, channels, classes):
        super().__init__()
        self.blocks = nn.ModuleList([Block(tokens, channels) for _ in range(2)])
        self.head = nn.Linear(channels, classes)

    def forward(self, x, temperature):
        for block in self.blocks:
            x = block(x)
        pooled = x.mean(dim=1)
        return self.head(pooled) / temperature, pooled


batch = 8
tokens = 20
channels = 48
classes = 10


def get_inputs():
    return [torch.randn(batch, tokens, channels), 1.5]


def get_init_inputs():
    return [tokens, channels, classes]
