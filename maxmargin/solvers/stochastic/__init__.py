"""Primal solvers that look at one example at a time: subgradients, SVRG, Casimir, the perceptron."""
