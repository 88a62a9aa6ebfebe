"""One page on what a model did: a file of HTML that needs no network, made of what models, metrics and traces say."""
