#include <torch/torch.h>
#include <iostream>

int main() {
  torch::manual_seed(0);
  auto layer = torch::nn::Linear(4, 2);
  auto loss = layer->forward(torch::randn({8, 4})).pow(2).mean();
  loss.backward();
  bool learnt = layer->weight.grad().abs().sum().item<double>() > 0;
  std::cout << (learnt ? "gradients" : "nothing") << std::endl;
  return learnt ? 0 : 1;
}
