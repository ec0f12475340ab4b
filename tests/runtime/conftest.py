from storage.compiled import adds_products_of_bytes

# What is compiled for an instruction can be tested only where the processor has it.
collect_ignore = [] if adds_products_of_bytes() else ["test_minilm_compiled.py"]
