"""What a deployment does under traffic: operators of an iteration, its time, the scheduler, what requests see."""
