"""What several tests of cli share."""

import os
import pwd

from harness import Skip


def other_user():
    if os.getuid():
        raise Skip("needs root, to be another user")
    return pwd.getpwnam("nobody")
