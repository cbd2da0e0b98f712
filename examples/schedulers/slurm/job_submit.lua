--[[ Slurm job-submit plugin: a job that carries a planning question gets the number of nodes that it is worth.

Install it as job_submit.lua beside slurm.conf, with JobSubmitPlugins=lua.  A job opts in by its comment:

    sbatch --comment=meshwright:/home/me/question.json --nodes=1-16 train.sbatch

Slurm is never held up: the planner has TIMEOUT_S seconds, and whatever goes wrong leaves the job as it was.
--]]

local PLAN_JOB = os.getenv("MESHWRIGHT_PLAN_JOB") or "/opt/meshwright/plan_job.sh"
local TIMEOUT_S = tonumber(os.getenv("MESHWRIGHT_TIMEOUT_S")) or 8
local MOST_NODES = 64
local NO_VALUE = slurm.NO_VAL or 4294967294

-- A path between single quotes, as a shell takes it literally.
local function quoted(text)
   return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- How many nodes the question is worth, or nil.
local function worth(question, least, most)
   local command = string.format(
      "timeout %d %s nodes %s --nodes %d-%d 2>/dev/null", TIMEOUT_S, quoted(PLAN_JOB), quoted(question), least, most
   )
   local pipe = io.popen(command)
   if pipe == nil then return nil end
   local said = pipe:read("*l")
   pipe:close()
   return said and tonumber(said:match("^%d+$"))
end

function slurm_job_submit(job, partitions, uid)
   local question = job.comment and job.comment:match("^meshwright:(/[%w%._/%-]+)$")
   if question == nil then return slurm.SUCCESS end
   local least = (job.min_nodes and job.min_nodes < NO_VALUE) and job.min_nodes or 1
   local most = (job.max_nodes and job.max_nodes < NO_VALUE) and job.max_nodes or MOST_NODES
   most = math.min(most, least + MOST_NODES - 1)
   local nodes = worth(question, least, most)
   if nodes == nil or nodes < least or nodes > most then
      slurm.log_info("meshwright: no answer for %s; the job stays as it is", question)
      return slurm.SUCCESS
   end
   job.min_nodes = nodes
   job.max_nodes = nodes
   slurm.log_user("meshwright: this job is worth %d nodes", nodes)
   return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
   return slurm.SUCCESS
end

return slurm.SUCCESS
