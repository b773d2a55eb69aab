from .compose import join as join
from .cooldown import extend as extend
from .units import Length as Length
from .units import epochs as epochs
from .units import fraction as fraction
from .units import steps as steps
from .units import tokens as tokens
