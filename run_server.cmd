@echo off
rem The Windows twin of run_server.sh. Only the protocol may reach stdout.
setlocal
set "HERE=%~dp0"
rem Earlier versions kept memories in the checkout, where `git clean -xfd` deletes them.
if not defined AIAML_MEMORY_DIR if exist "%HERE%memory\files" set "AIAML_MEMORY_DIR=%HERE%memory"
set "AIAML_LAUNCHER=%HERE%run_server.cmd"
set "VENV=%HERE%.venv"
if not exist "%VENV%\.ready" goto set_up
"%VENV%\Scripts\python.exe" -c "import aiaml_server" >nul 2>nul && goto serve

:set_up
echo Setting up the server in %VENV%; this is done once. 1>&2
where uv >nul 2>nul
if errorlevel 1 goto with_pip
if not exist "%VENV%\Scripts\python.exe" uv venv --quiet --python ">=3.10" "%VENV%" 1>&2 || goto with_pip
uv pip install --quiet --compile-bytecode --python "%VENV%\Scripts\python.exe" --editable "%HERE%." 1>&2 || goto with_pip
goto ready

:with_pip
rem It may know a package index or certificates that uv does not.
py -3 -m venv --clear "%VENV%" 1>&2 || python -m venv --clear "%VENV%" 1>&2 || exit /b 1
"%VENV%\Scripts\python.exe" -m pip install --quiet --disable-pip-version-check --editable "%HERE%." 1>&2 || exit /b 1

:ready
type nul > "%VENV%\.ready"

:serve
"%VENV%\Scripts\python.exe" -m aiaml_server %*
