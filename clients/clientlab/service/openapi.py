"""The API's description, made of the shapes and the routes themselves: it can't say what is not so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from clientlab import __version__
from clientlab.service.api import Route
from clientlab.service.shapes import Problem

_REF = "#/components/schemas/{model}"


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """OpenAPI 3.1 of all routes."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "clientlab",
            "version": __version__,
            "description": "The lab service: runs and reports for people and programs, turns for workers.",
        },
        "paths": paths,
        "components": {
            "schemas": _schemas(routes),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas(routes: Iterable[Route]) -> dict[str, Any]:
    shapes = {shape for route in routes for shape in (route.body, route.answer) if isinstance(shape, type)} | {Problem}
    ordered = sorted(shapes, key=lambda shape: shape.__name__)
    found = models_json_schema([(shape, "serialization") for shape in ordered], ref_template=_REF)[1]
    schemas: dict[str, Any] = found["$defs"]
    return schemas


def _operation(route: Route) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": route.says,
        "operationId": f"{route.method.lower()}{re.sub(r'[^a-z]+', '_', route.path)}".rstrip("_"),
        "responses": {"303" if route.form else "200": _answer(route)},
    }
    described["responses"] |= {str(code): _problem(code) for code in route.refusals}
    if route.path == "/api/turns":
        described["responses"]["204"] = {"description": "No turn yet; ask again"}
    if names := re.findall(r"{(\w+)}", route.path):
        described["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ]
    if route.body is not None:
        kind = "application/x-www-form-urlencoded" if route.form else "application/json"
        described["requestBody"] = {"required": True, "content": {kind: {"schema": _ref(route.body)}}}
    if route.token:
        described["security"] = [{"token": []}]
    return described


def _answer(route: Route) -> dict[str, Any]:
    if route.form:
        return {"description": "Back to the page"}
    if isinstance(route.answer, str):
        return {"description": route.says, "content": {route.answer: {"schema": {"type": "string"}}}}
    schema = {"type": "array", "items": _ref(route.answer)} if route.many else _ref(route.answer)
    return {"description": route.says, "content": {"application/json": {"schema": schema}}}


def _problem(code: int) -> dict[str, Any]:
    return {"description": HTTPStatus(code).phrase, "content": {"application/json": {"schema": _ref(Problem)}}}


def _ref(shape: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REF.format(model=shape.__name__)}
