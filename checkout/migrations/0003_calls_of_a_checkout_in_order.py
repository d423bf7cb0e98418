from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """The newest calls of a checkout are read without reading all of them. No writer waits for the index."""

    atomic = False
    dependencies = [("checkout", "0002_guards")]

    operations = [
        AddIndexConcurrently(
            model_name="apicall",
            index=models.Index(
                fields=["merchant", "checkout_uuid", "created_at"], name="apicall_of_checkout"
            ),
        ),
        RemoveIndexConcurrently(model_name="apicall", name="checkout_ap_merchan_5b9156_idx"),
    ]
