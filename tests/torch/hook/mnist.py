"""Learns to tell apart handwritten digits, which are made up here, and checks itself after each epoch.

Prints at its end, as JSON, how often and how long it waited for data.
"""

import argparse
import json
import time

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    """Images of 28 by 28 with a bar whose place is the digit."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if index >= self.length:
            raise IndexError(index)
        digit = index % 10
        image = 0.1 * torch.randn(1, 28, 28)
        image[:, :, 2 * digit + 4] += 1
        time.sleep(0.0005)
        return image, digit


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, 2)
        self.conv2 = nn.Conv2d(4, 8, 3, 2)
        self.fc = nn.Linear(8 * 36, 10)

    def forward(self, images):
        hidden = F.relu(self.conv2(F.relu(self.conv1(images))))
        return F.log_softmax(self.fc(hidden.flatten(1)), dim=1)


class Waits:
    """Times how long a loop waits for each batch."""

    def __init__(self):
        self.seconds = []

    def over(self, loader):
        came = time.perf_counter()
        for batch in loader:
            self.seconds.append(time.perf_counter() - came)
            yield batch
            came = time.perf_counter()


def train(args, model, loader, optimizer, epoch, waits):
    model.train()
    for number, (images, digits) in enumerate(waits.over(loader)):
        optimizer.zero_grad()
        loss = F.nll_loss(model(images), digits)
        loss.backward()
        optimizer.step()
        if number % args.log_interval == 0:
            print("epoch %d, batch %d of %d: loss %.4f" % (epoch, number, len(loader), loss.item()))


@torch.no_grad()
def test(model, loader, waits):
    model.eval()
    right = 0
    for images, digits in waits.over(loader):
        right += (model(images).argmax(1) == digits).sum().item()
    print("right: %d of %d" % (right, len(loader.dataset)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--test-batch-size", type=int, default=40)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=10)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    settings = dict(num_workers=args.workers)
    train_loader = DataLoader(Digits(480), args.batch_size, shuffle=True, **settings)
    test_loader = DataLoader(Digits(120), args.test_batch_size, **settings)
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=args.lr)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=args.gamma)
    waits = Waits()
    for epoch in range(1, args.epochs + 1):
        train(args, model, train_loader, optimizer, epoch, waits)
        test(model, test_loader, waits)
        scheduler.step()
    print(json.dumps({"seconds": sum(waits.seconds), "waits": waits.seconds, "batches": len(waits.seconds)}))


if __name__ == "__main__":
    main()
