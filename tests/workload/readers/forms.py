"""The small traces of all formats, by name."""

from tests.workload.readers import forms_of_requests, forms_of_sessions
from tests.workload.readers.form import TEXT, Form, lines

__all__ = ["FORMS", "TEXT", "Form", "lines"]

FORMS = {form.format: form for form in (*forms_of_requests.FORMS, *forms_of_sessions.FORMS)}
