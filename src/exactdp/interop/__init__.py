"""Results for other programs, and other privacy libraries.

Objects as JSON (json_objects, json_values), as data frames and files (frames, result_tables), the JSON Schemas of all files
(schemas), events of dp_accounting and its privacy loss distributions (dp_accounting, pld), OpenDP's noise (opendp), conversions
as riskcal and AutoDP name them (names).
A library that is not installed is named with the extra that brings it.
"""
