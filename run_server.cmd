@echo off
rem The Windows twin of run_server.sh. Only the protocol may reach stdout.
setlocal
set "HERE=%~dp0"
rem If memory\ of the checkout has memories, serve them.
if not defined AIAML_MEMORY_DIR if exist "%HERE%memory\files" set "AIAML_MEMORY_DIR=%HERE%memory"
set "AIAML_LAUNCHER=%HERE%run_server.cmd"
set "VENV=%HERE%.venv"
set "PYTHON=%VENV%\Scripts\python.exe"
rem Windows looks for programs and modules in the current directory first. It may belong to anybody.
pushd "%HERE%"
rem Everything is installed, from this directory, and pyproject.toml has not changed since.
if not exist "%VENV%\.ready" goto set_up
set "WORKS=import os, sys, aiaml_server as a; from os.path import getmtime as t"
set "WORKS=%WORKS%; here = os.path.samefile(os.path.dirname(a.__file__), 'src/aiaml_server')"
set "WORKS=%WORKS%; sys.exit(not here or t('pyproject.toml') > t('.venv/.ready'))"
"%PYTHON%" -c "%WORKS%" >nul 2>nul && goto serve

:set_up
echo Setting up the server in %VENV%: 40 packages, half a minute to two (only once). 1>&2
rem Remove the environment if its Python is gone.
if exist "%VENV%" "%PYTHON%" -c "" >nul 2>nul || rmdir /s /q "%VENV%" >nul 2>nul
where uv >nul 2>nul
if errorlevel 1 goto with_pip
if not exist "%PYTHON%" uv venv --quiet --python ">=3.10" "%VENV%" 1>&2 || goto with_pip
uv pip install --quiet --compile-bytecode --python "%PYTHON%" --editable "%HERE%." 1>&2 || goto with_pip
goto ready

:with_pip
rem pip may have a package index or certificates configured that uv does not know.
set "NEW=import sys; sys.exit(sys.version_info < (3, 10))"
set "FOUND=py -3"
%FOUND% -c "%NEW%" >nul 2>nul && goto found
set "FOUND=python"
%FOUND% -c "%NEW%" >nul 2>nul && goto found
echo run_server.cmd: Python 3.10 or newer, or uv, is needed, but neither is on the PATH 1>&2
exit /b 1

:found
%FOUND% -m venv --clear "%VENV%" 1>&2 || exit /b 1
"%PYTHON%" -m pip install --quiet --disable-pip-version-check --editable "%HERE%." 1>&2 || exit /b 1

:ready
type nul > "%VENV%\.ready"

:serve
popd
"%VENV%\Scripts\aiaml-server.exe" %*
