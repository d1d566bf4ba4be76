"""The homes: where upstreams and proxy are, who starts them, and what can be read off them."""
